import { escapeHidden } from "../../engine/HiddenText.ts"

/** A text from somebody else, made safe to print: it stays on its line and does not control the terminal. */
export const escaped = escapeHidden

/** The same for a text of ours with several lines. Each line may quote somebody else. */
export const escapedLines = (text: string): string => text.split("\n").map(escaped).join("\n")
