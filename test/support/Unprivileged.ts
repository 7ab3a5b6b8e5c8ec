import { spawnSync } from "node:child_process"

/** The user and the group of a process. Empty if the process has those of its parent. */
export interface Credentials {
  readonly uid?: number
  readonly gid?: number
}

/** Returns the user for a program that refuses to run as root. Any other user that exists is suitable. */
export const unprivileged = (): Credentials => {
  if (process.getuid?.() !== 0) return {}
  for (const name of ["postgres", "nobody"]) {
    const [uid, gid] = ["-u", "-g"].map((flag) => spawnSync("id", [flag, name], { encoding: "utf8" }).stdout.trim())
    if (uid && gid && uid !== "0") return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error("the program does not run as root, and neither of the users postgres and nobody exists")
}
