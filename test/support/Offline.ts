import type { Layer } from "effect"
import { Web, WebFailed } from "../../src/engine/net/Web.ts"

/** Answers no request, for tests whose CA keys are in files. */
export const offline: Layer.Layer<Web> = Web.layerScripted(() => new WebFailed({ detail: "this test has no network" }))
