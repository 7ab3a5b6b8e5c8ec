import * as Result from "effect/Result"
import { commonPasswords } from "./CommonPasswords.ts"
import { WeakPassword } from "./OperatorError.ts"

/*
 * The rules for a new password (docs/contribute/decisions/admin.md, "Passwords"). Stored passwords are never checked
 * again.
 */

const fewestCharacters = 12
const mostOctets = 1024
const shortestWord = 4
const shortestRun = 3

/** Sequences of neighbouring characters, in the rows and columns of keyboards and in the alphabet. */
const sides = [
  "abcdefghijklmnopqrstuvwxyzab",
  "0123456789012",
  "qwertyuiopasdfghjklzxcvbnm",
  "qwertzuiopasdfghjklyxcvbnm",
  "azertyuiopqsdfghjklmwxcvbn",
  "!@#$%^&*()_+",
  "`1234567890-=",
  "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/",
  "qazwsxedcrfvtgbyhnujmikolp"
].flatMap((side) => [side, [...side].toReversed().join("")])

const isRun = (text: string): boolean => sides.some((side) => side.includes(text)) || new Set(text).size === 1

/** Returns whether a text consists only of runs of three or more characters. */
const isMadeOfRuns = (text: string): boolean => {
  const characters = [...text]
  // `ends[at]` says whether the text before `at` consists of runs. A run of six or more characters counts as two
  // shorter runs.
  const ends = [true]
  for (let at = 1; at <= characters.length; at++) {
    ends[at] = [shortestRun, shortestRun + 1, shortestRun + 2].some((length) =>
      length <= at && ends[at - length] === true && isRun(characters.slice(at - length, at).join(""))
    )
  }
  return ends[characters.length] === true
}

/** Returns, in lower case, the words of a text that are long enough to make a password easy to guess. */
const wordsOf = (text: string): ReadonlyArray<string> =>
  text.normalize("NFC").toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => [...word].length >= shortestWord)

/** The texts that an attacker of this installation would try first. A password must not contain them. */
export interface Guessable {
  readonly username: string
  /** The name of the product, the hosts of its URLs, the subjects of its CAs, and the names of its profiles. */
  readonly texts: ReadonlyArray<string>
}

const faultOf = (password: string, { texts, username }: Guessable): string | undefined => {
  if ([...password].length < fewestCharacters) return `has fewer than ${fewestCharacters} characters`
  if (Buffer.byteLength(password) > mostOctets) return `has more than ${mostOctets} octets`
  if (/\p{Surrogate}/u.test(password)) return "is not valid Unicode text"
  const folded = password.toLowerCase()
  const word = wordsOf(username).find((one) => folded.includes(one))
  if (word !== undefined) return `contains ${word}, which is in the name of the operator`
  const known = texts.flatMap(wordsOf).find((one) => folded.includes(one))
  if (known !== undefined) return `contains ${known}, which everybody here knows`
  if (new Set(folded).size === 1) return "is one character, repeated"
  if (isMadeOfRuns(folded)) return "is a run of the keyboard or the alphabet"
  return commonPasswords.has(folded) ? "is one that many people use" : undefined
}

/**
 * Returns the password in the form that is hashed. If the password is refused, fails with the reason. The reason
 * repeats only those parts of the password that are publicly known.
 */
export const checkPassword = (given: string, guessable: Guessable): Result.Result<string, WeakPassword> => {
  const password = given.normalize("NFC")
  const why = faultOf(password, guessable)
  return why === undefined ? Result.succeed(password) : Result.fail(new WeakPassword({ why }))
}
