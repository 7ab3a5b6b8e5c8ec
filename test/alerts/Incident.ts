import type { Scene } from "./Scene.ts"

/** An incident that is played: its name is that of its page below docs/operate/runbooks, and of its recording. */
export interface Incident {
  readonly name: string
  /** `config.toml` of its processes, but for metrics. */
  readonly config: string
  /** Plays it: a healthy service, what goes wrong, and how it is mended, with the alerts of each. */
  readonly play: (scene: Scene) => Promise<void>
}
