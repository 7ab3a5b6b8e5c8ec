import type { Scene } from "./Scene.ts"

/** An incident that can be played. Its page in docs/operate/runbooks and its recording have the same name. */
export interface Incident {
  readonly name: string
  /** `config.toml` of its processes, without the section for metrics. */
  readonly config: string
  /** Plays a healthy service, the failure and the repair, with the alerts of each. */
  readonly play: (scene: Scene) => Promise<void>
}
