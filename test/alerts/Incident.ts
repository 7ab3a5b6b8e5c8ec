import type { Scene } from "./Scene.ts"

/** An incident that is played. Its page below docs/operate/runbooks and its recording have its name. */
export interface Incident {
  readonly name: string
  /** `config.toml` of its processes, without the section for metrics. */
  readonly config: string
  /** Plays the incident: a healthy service, the failure and the repair, with the alerts of each. */
  readonly play: (scene: Scene) => Promise<void>
}
