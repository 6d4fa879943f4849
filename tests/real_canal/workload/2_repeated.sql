-- Canal is killed after these statements and sends all of them again.
CREATE DATABASE repeated;
CREATE TABLE repeated.rows_twice (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO repeated.rows_twice VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');
UPDATE repeated.rows_twice SET id = 10 WHERE id = 1;
INSERT INTO repeated.rows_twice VALUES (1, 'new');
ALTER TABLE repeated.rows_twice ADD COLUMN n INT NOT NULL DEFAULT 7 FIRST;
UPDATE repeated.rows_twice SET n = 8 WHERE id = 2;
DELETE FROM repeated.rows_twice WHERE id = 3;
INSERT INTO repeated.rows_twice VALUES (9, 3, 'again');
TRUNCATE TABLE statements.emptied;
INSERT INTO statements.emptied VALUES (5, 55);
ALTER TABLE structure.grows ADD COLUMN second_extra INT DEFAULT 3;
INSERT INTO structure.grows VALUES (6, 'own', 'six', 6, NULL);
UPDATE structure.grows SET second_extra = 4 WHERE id = 1;
UPDATE flow.accounts SET amount = amount + 0.01;
UPDATE hashed.orders SET note = CONCAT('second ', id) WHERE id MOD 4 = 0;
DELETE FROM hashed.lines WHERE line = 2;
UPDATE keyed.moves SET v = CONCAT(v, '!');
