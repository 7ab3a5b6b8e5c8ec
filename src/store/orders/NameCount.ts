/**
 * SQL for how many names an order has, by its own row: each name is one object of the column `identifiers`, and no name has a brace.
 * Rows that hold something for each name are counted against it, since a row that is missing stands for nothing. A column that
 * cannot be read has another number.
 */
export const nameCountOf = (order: "orders" | "o"): string =>
  `length(${order}.identifiers) - length(replace(${order}.identifiers, '{', ''))`
