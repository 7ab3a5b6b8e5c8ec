/* What a User-Agent says in words of our own. Whoever sends one writes what they like into it. */

type Known = ReadonlyArray<readonly [pattern: RegExp, word: string]>

/** The first that fits counts: most browsers name those before them too. */
const programs: Known = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|Chromium|CriOS)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
  [/^curl\//, "curl"],
  [/^Wget\//, "wget"],
  [/^python-|^Python/, "Python"],
  [/^Go-http-client\//, "Go"]
]

const systems: Known = [
  [/\bWindows\b/, "Windows"],
  [/\b(?:iPhone|iPad)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\b(?:Macintosh|Mac OS X)\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"]
]

const wordOf = (known: Known, userAgent: string): string | undefined =>
  known.find(([pattern]) => pattern.test(userAgent))?.[1]

/** A program and its system as a User-Agent claims them, such as `Firefox on Linux`. Nothing of its own text is in the answer. */
export const clientProgram = (userAgent: string): string => {
  const program = wordOf(programs, userAgent) ?? "another program"
  const system = wordOf(systems, userAgent)
  return system === undefined ? program : `${program} on ${system}`
}
