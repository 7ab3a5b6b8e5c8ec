import type { Scene } from "./Scene.ts"

/**
 * An incident that can be played. Its name is also that of its page below docs/operate/runbooks and of its recording.
 */
export interface Incident {
  readonly name: string
  /** `config.toml` of its processes, without the section for metrics. */
  readonly config: string
  /** Plays a healthy service, the failure and the repair, with the alerts of each. */
  readonly play: (scene: Scene) => Promise<void>
}
