-- The kind of certificate that an order is for. NULL: the kind default, and every order of a version before kinds.

ALTER TABLE orders ADD COLUMN kind TEXT

-- The orders of the other kinds, for lists. An order of the kind default is in no such list, and writes no entry.

CREATE INDEX orders_kind ON orders (kind, created_at) WHERE kind IS NOT NULL

-- What a process knows beyond the first version: words with blanks between them. NULL: a version that knew none.

ALTER TABLE workers ADD COLUMN knows TEXT

-- 1: what may be issued for the order is restricted by its kind or by a credential, so that only a process that knows both signs
-- it. Written when the order is finalized.

ALTER TABLE orders ADD COLUMN restricted INTEGER
