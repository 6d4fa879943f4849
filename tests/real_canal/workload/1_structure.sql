-- Structures that change between rows. Only Canal's own store of structures makes the older rows readable.
CREATE DATABASE structure;
CREATE TABLE structure.grows (id INT PRIMARY KEY, v VARCHAR(10), w INT);
INSERT INTO structure.grows VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3);
ALTER TABLE structure.grows ADD COLUMN first INT FIRST;
INSERT INTO structure.grows VALUES (40, 4, 'four', 4);
ALTER TABLE structure.grows ADD COLUMN extra VARCHAR(20) NOT NULL DEFAULT 'filled' AFTER id, ADD INDEX (w);
UPDATE structure.grows SET w = 10 WHERE id = 1;
ALTER TABLE structure.grows MODIFY v VARCHAR(100), MODIFY w BIGINT;
INSERT INTO structure.grows VALUES (50, 5, 'own', REPEAT('v', 100), 5000000000);
ALTER TABLE structure.grows DROP COLUMN first;
UPDATE structure.grows SET extra = 'changed' WHERE id = 2;
ALTER TABLE structure.grows COMMENT 'grown', ENGINE = InnoDB;
-- The old values under the new name are not in the stream.
CREATE TABLE structure.renames (id INT PRIMARY KEY, old_name VARCHAR(10));
INSERT INTO structure.renames VALUES (1, 'kept'), (2, 'kept'), (3, 'kept');
ALTER TABLE structure.renames CHANGE COLUMN old_name new_name VARCHAR(10);
UPDATE structure.renames SET new_name = 'sent' WHERE id = 2;
CREATE TABLE structure.narrows (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO structure.narrows VALUES (1, 'long value'), (2, 'x');
ALTER TABLE structure.narrows MODIFY v VARCHAR(1);
UPDATE structure.narrows SET v = 'y' WHERE id = 2;
