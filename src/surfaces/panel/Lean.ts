/* The built-in templates are laid out for people, and a page is not (docs/decisions/panel.md, "Weight"). */

/** End tags that HTML lets one leave out wherever these templates have them. */
const optional = /<\/(?:td|th|tr|li|dt|dd|option)>/g

/**
 * Line breaks around cells and rows, where a browser makes nothing of them. The stylesheet shows a dash in a cell only if
 * nothing is in it, not even a line break.
 */
const between = /(?<=<\/tr>)\n|(?<=>)\n(?=<\/?(?:td|th|tr)\b)/g

/**
 * A template without what HTML can do without: indentation, and optional end tags. A line break that goes becomes a
 * comment, so that a fault is still found at its line.
 */
export const lean = (template: string): string =>
  template.replaceAll(/^[ \t]+/gm, "").replaceAll(between, "{#\n#}").replaceAll(optional, "")
