-- Rows that change through programs, several tables in a statement, and values that the database computes.
CREATE DATABASE programs;
USE programs;
CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(10));
CREATE TABLE audit (id INT AUTO_INCREMENT PRIMARY KEY, `select` INT, `größe` INT);
CREATE TRIGGER audited AFTER INSERT ON orders FOR EACH ROW INSERT INTO audit (`select`) VALUES (NEW.id);
CREATE PROCEDURE order_twice(n INT) INSERT INTO orders VALUES (n, 'called'), (n + 1, 'called');
INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c');
CALL order_twice(10);
UPDATE orders JOIN audit ON orders.id = audit.`select` SET orders.v = 'joined', audit.`größe` = 7 WHERE orders.id < 3;
DELETE orders, audit FROM orders JOIN audit ON orders.id = audit.`select` WHERE orders.id = 3;
CREATE TABLE Computed (Id INT PRIMARY KEY, A INT, B INT AS (A * 2) VIRTUAL, C INT AS (A * 3) STORED);
INSERT INTO Computed (Id, A) SELECT id, id * 10 FROM orders;
UPDATE Computed SET A = A + 1 WHERE Id = 1;
