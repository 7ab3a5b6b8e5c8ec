/**
 * Returns SQL for the number of names of an order. Each name is one object in the column `identifiers`, and no name has
 * a brace. The number of other rows of the order should be compared with it, because nothing else shows that a row is
 * missing. If the column cannot be read, the number differs.
 */
export const nameCountOf = (order: "orders" | "o"): string =>
  `length(${order}.identifiers) - length(replace(${order}.identifiers, '{', ''))`
