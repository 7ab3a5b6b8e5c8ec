/* Names the program behind a User-Agent in words of this service, because a client may send any text. */

type Known = ReadonlyArray<readonly [pattern: RegExp, word: string]>

/** The first match counts. Most browsers also name other browsers, which stand further down in this list. */
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
