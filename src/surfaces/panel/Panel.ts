import * as Effect from "effect/Effect"
import { emit } from "../../domain/words/Log.ts"
import type { Resolved } from "../../settings/Resolve.ts"
import type { CheckServices } from "../operator/gate/Entrance.ts"
import { make } from "./PanelApp.ts"
import { routesOf } from "./PanelRoutes.ts"
import { makePresenting } from "./Presenting.ts"
import { renderingOf } from "./Rendering.ts"
import type { PanelFiles } from "./Statics.ts"
import { readStatics } from "./Statics.ts"

/**
 * Makes the panel of a configuration, and compiles every template. The panel serves until its scope closes. Logs a
 * warning for each file of the operator that replaces no template.
 */
export const makePanel = (
  resolved: Pick<Resolved, "config" | "sources">,
  checkServices: CheckServices,
  files: PanelFiles,
  version: string
) =>
  Effect.gen(function*() {
    const { admin } = resolved.config
    const statics = yield* readStatics(files)
    const rendering = yield* renderingOf(files, admin)
    for (const path of rendering.unused) yield* emit("admin_template_unused", { path })
    return make(admin, checkServices, routesOf(resolved, statics), makePresenting(rendering, statics, version), {
      resolved,
      version,
      mostRows: admin.page_size_max
    })
  })
