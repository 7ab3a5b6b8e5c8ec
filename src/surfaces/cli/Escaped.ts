/** Characters a terminal would act on, or that would move what stands beside them. */
const acting = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const named = (character: string): string => {
  const written = JSON.stringify(character).slice(1, -1)
  return written === character ? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : written
}

/** A text of somebody else, so that it stays on its line and says nothing to the terminal. */
export const escaped = (text: string): string => text.replaceAll(acting, named)

/** The same for a text of several lines of ours, each of which may quote somebody else. */
export const escapedLines = (text: string): string => text.split("\n").map(escaped).join("\n")
