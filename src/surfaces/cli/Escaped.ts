import { escapeHidden } from "../../engine/HiddenText.ts"

/** Makes a text from outside safe to print: it stays on one line and does not control the terminal. */
export const escaped = escapeHidden

/** Makes a text of this service with several lines safe to print, because each line may quote a text from outside. */
export const escapedLines = (text: string): string => text.split("\n").map(escaped).join("\n")
