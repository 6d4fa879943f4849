-- After a restart of the database, and so in another file of the binary log.
CREATE TABLE flow.after_restart (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO flow.after_restart VALUES (1, 'a'), (2, 'b');
UPDATE flow.after_restart SET v = 'c' WHERE id = 2;
UPDATE flow.accounts SET owner = CONCAT(owner, '''') WHERE id < 3;
DELETE FROM flow.accounts WHERE id = 4;
ALTER TABLE structure.grows DROP COLUMN w;
INSERT INTO structure.grows VALUES (7, 'own', 'seven', 7);
UPDATE hashed.orders SET total = 0 WHERE id < 10;
UPDATE types.texts SET j = '[1]' WHERE id = 3;
