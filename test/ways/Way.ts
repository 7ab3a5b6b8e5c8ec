/** What a person has done so far on a way, and what the machine answered last. */
export class Steps {
  readonly taken: Array<string> = []
  last = ""

  /** Counts a command that is typed or pasted, and returns it. Lines that are pasted together count once. */
  typed(command: string): string {
    this.taken.push(command)
    return command
  }

  /** Counts a form that is filled, a link that is opened, or a file that is edited. */
  done(what: string): void {
    this.taken.push(`(${what})`)
  }

  /** Remembers the last line of an output. */
  said(output: string): void {
    this.last = output.trimEnd().split("\n").at(-1)?.trim() ?? ""
  }
}

/** Where the ways are gone. */
export interface Surroundings {
  /** A fresh clone in which `npm ci` has been run. A way may leave anything there. */
  readonly clone: string
  /** A folder for temporary files, which is removed at the end. */
  readonly scratch: string
}

/** A way of a newcomer from a document to something that works. */
export interface Way {
  readonly name: string
  /** What the way took before its page existed. */
  readonly before: string
  readonly page: string
  /** The programs of the way, as `test/interop/Packages.ts` knows them. */
  readonly commands: ReadonlyArray<string>
  /** Whether the way begins with the clone, so that `npm ci` belongs to it. */
  readonly beginsWithClone?: true
  /** Goes the way, and fails if it does not lead where it should. */
  readonly go: (steps: Steps, surroundings: Surroundings) => Promise<void>
}

/** How a way ended. */
export interface Gone {
  readonly way: string
  readonly steps: ReadonlyArray<string>
  readonly seconds: number
  readonly last: string
  readonly error?: string
}

/** Fails with the given sentence unless a condition holds. */
export const expects = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}
