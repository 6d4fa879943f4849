-- 64 MB of rows, each of which is a message of its own.
CREATE DATABASE large;
USE large;
CREATE TABLE large.bodies (id INT PRIMARY KEY, body MEDIUMTEXT, raw MEDIUMBLOB);
INSERT INTO large.bodies SELECT seq, REPEAT(MD5(seq), 4096), UNHEX(REPEAT(SHA2(seq, 512), 2048)) FROM seq_1_to_256;
UPDATE large.bodies SET body = CONCAT('é', body) WHERE id MOD 64 = 0;
DELETE FROM large.bodies WHERE id = 7;
