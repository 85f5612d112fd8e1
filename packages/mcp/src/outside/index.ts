export { OutsideError } from './outside-server.ts'
export { OutsideServers, readOutsideFile } from './outside-servers.ts'
export type { OutsideServersOptions, OutsideTool } from './outside-servers.ts'
