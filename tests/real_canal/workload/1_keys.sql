-- Keys that change, also within a transaction, and tables without a primary key.
CREATE DATABASE keyed;
CREATE TABLE keyed.moves (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO keyed.moves VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four');
UPDATE keyed.moves SET id = 100 WHERE id = 1;
UPDATE keyed.moves SET id = id + 1, v = CONCAT(v, '+') WHERE id < 100 ORDER BY id DESC;
BEGIN;
UPDATE keyed.moves SET id = -1 WHERE id = 3;
UPDATE keyed.moves SET id = 3 WHERE id = 4;
UPDATE keyed.moves SET id = 4 WHERE id = -1;
COMMIT;
UPDATE keyed.moves SET id = 101 WHERE id = 100;
INSERT INTO keyed.moves VALUES (100, 'again');
CREATE TABLE keyed.pairs (a VARCHAR(10) COLLATE utf8mb4_bin, b INT, v INT, PRIMARY KEY (b, a));
INSERT INTO keyed.pairs VALUES ('x', 1, 1), ('X', 1, 2), ('y', 2, 3);
UPDATE keyed.pairs SET b = 5 WHERE a = 'X';
DELETE FROM keyed.pairs WHERE a = 'y';
-- The source declares the key of this table.
CREATE TABLE keyed.uniques (u INT UNIQUE, n INT NOT NULL UNIQUE, v INT);
INSERT INTO keyed.uniques VALUES (1, 1, 1), (NULL, 2, 2), (3, 3, 3);
UPDATE keyed.uniques SET u = 5 WHERE n = 2;
DELETE FROM keyed.uniques WHERE n = 3;
-- Nothing identifies the rows of this table.
CREATE TABLE keyed.nothing (a INT, b VARCHAR(10));
INSERT INTO keyed.nothing VALUES (1, 'a'), (1, 'a'), (2, 'b');
UPDATE keyed.nothing SET b = 'z' WHERE a = 1;
