// placeholder
export class ToolHost {}
