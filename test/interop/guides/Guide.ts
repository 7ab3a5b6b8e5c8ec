import { bodiesIn, text } from "../../support/Documents.ts"

/* Reads the pages of docs/clients as instructions, whose sections have files to write and commands to run. */

/** One block of a section. */
export type Step =
  | { readonly kind: "file"; readonly path: string; readonly body: string }
  | { readonly kind: "shell"; readonly body: string }

/** Matches the line before a block with a file, which names the path: ``Write this into `/etc/caddy/Caddyfile`:``. */
const place = /^Write this into `(\/[^`]+)`[^`\n]*:$/

const stepsOf = (section: string): ReadonlyArray<Step> =>
  bodiesIn(section).flatMap(({ before, body, language }): ReadonlyArray<Step> => {
    if (language === "sh") return [{ kind: "shell", body }]
    const [, path] = place.exec(before) ?? []
    return path === undefined ? [] : [{ kind: "file", path, body }]
  })

/** Returns the steps of each section of a document, by heading. Sections without a command are left out. */
export const guideOf = (document: string): ReadonlyMap<string, ReadonlyArray<Step>> => {
  const sections = text(document).split(/^#+ (?=[^\n]+\n\n)/m).slice(1)
  const guide = sections.map((section) => [section.slice(0, section.indexOf("\n")), stepsOf(section)] as const)
  return new Map(guide.filter(([, steps]) => steps.some(({ kind }) => kind === "shell")))
}

/** The documents that have commands. */
export const guides = ["trust", "certbot", "lego", "apache", "caddy", "small-clients", "libraries"].map((page) =>
  `docs/clients/${page}.md`
)
