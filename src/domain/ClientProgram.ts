/* Names the program in a User-Agent header. The words are this service's own, because a client may send any text. */

type Known = ReadonlyArray<readonly [pattern: RegExp, word: string]>

/**
 * The known programs. The first match counts. The User-Agent of most browsers also names other browsers, and these
 * other browsers come later in the list.
 */
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

/**
 * Returns the program and the system that a User-Agent claims, such as `Firefox on Linux`. The result contains none of
 * the header's own text.
 */
export const clientProgram = (userAgent: string): string => {
  const program = wordOf(programs, userAgent) ?? "another program"
  const system = wordOf(systems, userAgent)
  return system === undefined ? program : `${program} on ${system}`
}
