/**
 * Returns SQL for the number of names of an order. Each name is one object in the column `identifiers`, and no name
 * contains a brace. Statements compare the number of other rows of the order with this number, because nothing else
 * shows that a row is missing. If the column cannot be read, the numbers differ.
 */
export const nameCountOf = (order: "orders" | "o"): string =>
  `length(${order}.identifiers) - length(replace(${order}.identifiers, '{', ''))`
