/**
 * SQL for the number of names of an order: each name is one object in the column `identifiers`, and no name holds a
 * brace. Compare the number of other rows of the order with it, because a missing row does not show by itself. If the
 * column cannot be read, the number differs.
 */
export const nameCountOf = (order: "orders" | "o"): string =>
  `length(${order}.identifiers) - length(replace(${order}.identifiers, '{', ''))`
