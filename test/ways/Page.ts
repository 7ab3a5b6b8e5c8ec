import { guideOf } from "../interop/guides/Guide.ts"
import { bodiesIn, commandsIn, text } from "../support/Documents.ts"

/*
 * Reads the commands of a way from its page, so that the page and the run cannot differ. A command that a page no
 * longer has ends the way with a sentence.
 */

/** Returns the commands of a section of a page, as they are typed. */
export const commandsBelow = (page: string, heading: string): ReadonlyArray<string> => {
  const section = guideOf(page).get(heading)
  if (section === undefined) throw new Error(`${page} has no commands below ${heading}`)
  return section.flatMap(({ body, kind }) => kind === "shell" ? commandsIn(body) : [])
}

/** Returns the only command of a section that begins with these words. */
export const commandBelow = (page: string, heading: string, words: string): string =>
  onlyOf(commandsBelow(page, heading), page, words)

/** Returns the commands of a page that no test can run as they are, because they need another machine or program. */
export const shownCommands = (page: string): ReadonlyArray<string> =>
  bodiesIn(text(page)).filter(({ language }) => language === "text").flatMap(({ body }) => commandsIn(body))

/** Returns the only command that begins with these words. */
export const onlyOf = (commands: ReadonlyArray<string>, page: string, words: string): string => {
  const [command, ...others] = commands.filter((one) => one.startsWith(words))
  if (command === undefined || others.length > 0) {
    throw new Error(`${page} must have exactly one command that begins with ${words}`)
  }
  return command
}

/** Returns the only block of a page in this language that contains these words. */
export const blockOf = (page: string, language: string, words: string): string => {
  const [block, ...others] = bodiesIn(text(page)).filter((one) => one.language === language && one.body.includes(words))
  if (block === undefined || others.length > 0) {
    throw new Error(`${page} must have exactly one block in ${language} with ${words}`)
  }
  return block.body
}
