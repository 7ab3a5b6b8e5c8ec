/** Characters that a terminal acts on, or that move the text beside them. */
const acting = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const named = (character: string): string => {
  const written = JSON.stringify(character).slice(1, -1)
  return written === character ? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : written
}

/** A text from somebody else, made safe to print: it stays on its line and does not control the terminal. */
export const escaped = (text: string): string => text.replaceAll(acting, named)

/** The same for a text of ours with several lines. Each line may quote somebody else. */
export const escapedLines = (text: string): string => text.split("\n").map(escaped).join("\n")
