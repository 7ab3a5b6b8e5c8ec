/**
 * The globs of filter checks (docs/configure/policy.md, "Checks"). The time to match grows linearly with the lengths of
 * the pattern and the text. The pieces between stars are searched from left to right, and only the first place where
 * each piece fits is tried.
 */

/** Whether a text matches. */
export type Matches = (text: string) => boolean

/** Matches the pieces between stars. A star stands for at least `least` characters. */
const piecewise = (pattern: string, least: 0 | 1): Matches => {
  const [head = "", ...rest] = pattern.split("*")
  const tail = rest.pop()
  if (tail === undefined) return (text) => text === pattern
  return (text) => {
    const end = text.length - tail.length
    if (!text.startsWith(head) || !text.endsWith(tail)) return false
    let at = head.length
    for (const piece of rest) {
      const found = text.indexOf(piece, at + least)
      if (found < 0) return false
      at = found + piece.length
    }
    return at + least <= end
  }
}

/** A compiled pattern, or a description of what is wrong with the pattern. */
export type Compiled = { readonly fault: string } | { readonly fault?: never; readonly matches: Matches }

// oxlint-disable-next-line no-control-regex
const unprintable = /[\u0000-\u0020\u007f]/

/**
 * Compiles a glob in which `*` stands for exactly one whole label. All other characters stand for themselves. Matching
 * ignores upper and lower case.
 */
export const labelGlob = (pattern: string): Compiled => {
  const labels = pattern.toLowerCase().split(".")
  if (pattern.trim() !== pattern || labels.includes("")) return { fault: "must be names whose labels are not empty" }
  if (labels.some((label) => label !== "*" && label.includes("*"))) {
    return { fault: "may use * for one whole label only" }
  }
  if (!labels.includes("*")) {
    const literal = labels.join(".")
    return { matches: (text) => text.toLowerCase() === literal }
  }
  // These labels are compared first, because they exclude most names, and the comparison is cheap.
  const suffix = labels.slice(labels.lastIndexOf("*") + 1).map((label) => `.${label}`).join("")
  return {
    matches: (text) => {
      const lower = text.toLowerCase()
      if (!lower.endsWith(suffix)) return false
      const stated = lower.split(".")
      return stated.length === labels.length &&
        stated.every((label, index) => labels[index] === "*" ? label !== "" : labels[index] === label)
    }
  }
}

/** Compiles a glob in which `*` stands for one or more characters other than `/`. Matching is case-sensitive. */
export const pathGlob = (pattern: string): Compiled => {
  if (!pattern.startsWith("/") || unprintable.test(pattern)) return { fault: "must be paths that begin with a slash" }
  if (!pattern.includes("*")) return { matches: (text) => text === pattern }
  const segments = pattern.split("/").map((segment) => piecewise(segment, 1))
  const head = pattern.slice(0, pattern.indexOf("*"))
  return {
    matches: (text) => {
      if (!text.startsWith(head)) return false
      const stated = text.split("/")
      return stated.length === segments.length && segments.every((matches, index) => matches(stated[index] ?? ""))
    }
  }
}

/**
 * Compiles a glob in which `*` stands for any characters. All other characters stand for themselves. Matching ignores
 * upper and lower case.
 */
export const textGlob = (pattern: string): Compiled => {
  if (pattern === "") return { fault: "must not be empty" }
  const matches = piecewise(pattern.toLowerCase(), 0)
  return { matches: (text) => matches(text.toLowerCase()) }
}
