-- Tables whose rows Canal spreads over the partitions of a topic by a hash of the key.
CREATE DATABASE hashed;
USE hashed;
CREATE TABLE hashed.orders (id INT PRIMARY KEY, customer INT, total DECIMAL(10,2), note VARCHAR(50));
INSERT INTO hashed.orders SELECT seq, seq MOD 17, seq / 7, CONCAT('note ', seq) FROM seq_1_to_2000;
UPDATE hashed.orders SET total = total + 1 WHERE id MOD 3 = 0;
DELETE FROM hashed.orders WHERE id MOD 5 = 0;
UPDATE hashed.orders SET note = NULL, customer = -customer WHERE id MOD 7 = 0;
INSERT INTO hashed.orders SELECT seq, 0, 0, 'again' FROM seq_1_to_2000 WHERE seq MOD 10 = 0;
CREATE TABLE hashed.lines (order_id INT, line SMALLINT, sku CHAR(8), PRIMARY KEY (order_id, line));
INSERT INTO hashed.lines SELECT seq DIV 3, seq MOD 3, HEX(seq) FROM seq_1_to_1000;
UPDATE hashed.lines SET sku = CONCAT('X', sku) WHERE line = 1;
-- A change of the key is in the partition of one key, and the other key's changes are in another one. Only the commit
-- times tell their order, in seconds.
CREATE TABLE hashed.moved (id INT PRIMARY KEY, v INT);
INSERT INTO hashed.moved SELECT seq, seq FROM seq_1_to_400;
DO SLEEP(2);
UPDATE hashed.moved SET id = id + 1000 WHERE id MOD 4 = 0;
DO SLEEP(2);
UPDATE hashed.moved SET v = -v;
DO SLEEP(2);
UPDATE hashed.moved SET id = id + 1000 WHERE id > 1000 AND id MOD 8 = 0;
