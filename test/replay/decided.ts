/* The differences from the recordings that are decided. They are also in the changelog, as far as users notice them. */

/** Plays that answer otherwise than they were recorded, and why that is right. */
export interface Decided {
  /** Found in `<group>: <name>`, as a difference is printed. */
  readonly plays: RegExp
  readonly reason: string
}

/** Every decided difference. One that no longer is there is to be removed. */
export const decided: ReadonlyArray<Decided> = []
