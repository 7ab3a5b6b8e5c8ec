/** The environment variable that tells a process that it is a child process of the service. Only the parent sets it. */
export const childVariable = "SERVICE_CHILD_PROCESS"

/** The message by which a parent asks a ready child to stop, like SIGTERM. */
export const stopMessage = { type: "stop" } as const

/** Returns whether a message is {@link stopMessage}. */
export const isStop = (message: unknown): boolean =>
  typeof message === "object" && message !== null && "type" in message && message.type === stopMessage.type
