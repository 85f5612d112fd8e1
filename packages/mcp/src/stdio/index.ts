export { assistantConfigs, ASSISTANTS } from './assistant-configs.ts'
export type { Assistant, AssistantConfig } from './assistant-configs.ts'
export { bridgeStdio } from './stdio-bridge.ts'
export type { BridgeOptions } from './stdio-bridge.ts'
