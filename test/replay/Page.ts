/* Reduces a page of the panel to its text, its links, and its forms with their fields, without its appearance. */

const attributesOf = (tag: string): ReadonlyMap<string, string> =>
  new Map(
    [...tag.matchAll(/([\w:-]+)(?:="([^"]*)"|='([^']*)')?/g)].slice(1).map(([, name = "", one, other]) =>
      [name, one ?? other ?? ""] as const
    )
  )

const told = [
  "name",
  "type",
  "value",
  "href",
  "action",
  "method",
  "hx-get",
  "hx-post",
  "hx-headers",
  "required",
  "maxlength",
  "min",
  "max",
  "checked",
  "selected",
  "disabled",
  "data-copy"
]

const speaking = new Set(["a", "form", "input", "select", "option", "button", "textarea", "meta"])
const inline = new Set(["b", "i", "em", "strong", "code", "span", "small", "abbr", "time", "td", "th", "dt", "svg"])

const shownTag = (tag: string): string => {
  const isEnd = tag.startsWith("</")
  const [name = ""] = /[a-z][\w-]*/i.exec(tag) ?? []
  if (isEnd) return name === "form" ? "\n[/form]\n" : inline.has(name) || speaking.has(name) ? " " : "\n"
  const attributes = attributesOf(tag)
  const said = told.flatMap((one) => attributes.has(one) ? [`${one}=${attributes.get(one) ?? ""}`] : [])
  const isTold = speaking.has(name) || said.some((one) => one.startsWith("hx-"))
  const isLine = !inline.has(name) && name !== "a"
  return `${isLine ? "\n" : " "}${isTold ? `[${[name, ...said].join(" ")}] ` : ""}`
}

/**
 * Matches the line that says what a word means. Its sentences stand on every page of a refusal and may change in every
 * version, and a decision about so many plays would hide other differences. The tests of the pages read these lines.
 */
const meaning = /<details class="means">[\s\S]*?<\/details>/g

/** Returns the text of a page. With `isWhole`, the text includes the frame that all pages share. */
export const textOf = (html: string, isWhole: boolean): string => {
  const main = isWhole ? undefined : /<main\b[^>]*>([\s\S]*?)<\/main>/.exec(html)?.[1]
  const [, title = ""] = /<title>([^<]*)<\/title>/.exec(html) ?? []
  const shown = (main === undefined ? html : `# ${title}\n${main}`)
    .replaceAll(/<!--[\s\S]*?-->/g, "")
    .replaceAll(meaning, "")
    .replaceAll(
      /<svg\b[\s\S]*?<\/svg>/g,
      (drawn) => ` [picture ${[...drawn.matchAll(/<title>([^<]*)/g)].map(([, one]) => one).join(", ")}] `
    )
    .replaceAll(/<[a-z/][^>]*>/gi, shownTag)
    .replaceAll(/&#x2f;/g, "/").replaceAll(/&#x27;/g, "'").replaceAll(/&#x3d;/g, "=").replaceAll("&quot;", "\"")
  return shown.split("\n").map((line) => line.replaceAll(/\s+/g, " ").trim()).filter((line) => line !== "").join("\n")
}
