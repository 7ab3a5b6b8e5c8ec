-- Extensions that the CSR of an order asked for and its certificate lacks: JSON of their names. NULL if there are none.

ALTER TABLE orders ADD COLUMN not_granted TEXT
