// A message of the assistant, as a UI message stream makes it.

// take puts one part of the stream into the message. It returns the text of an error, where it is one.
export function take(message, part) {
  const parts = message.parts;
  const tool = () => parts.findLast((p) => p.toolCallId === part.toolCallId);
  switch (part.type) {
    case "start":
      message.id = part.messageId ?? message.id;
      message.metadata = { ...message.metadata, ...part.messageMetadata };
      break;
    case "start-step":
      parts.push({ type: "step-start" });
      break;
    case "text-start":
    case "reasoning-start":
      parts.push({ type: part.type.replace("-start", ""), text: "", state: "streaming", providerMetadata: part.providerMetadata });
      break;
    case "text-delta":
    case "reasoning-delta":
      parts.at(-1).text += part.delta;
      break;
    case "text-end":
    case "reasoning-end":
      parts.at(-1).state = "done";
      break;
    case "tool-input-start":
      parts.push({ type: `tool-${part.toolName}`, toolCallId: part.toolCallId, state: "input-streaming", written: "" });
      break;
    case "tool-input-delta":
      tool().written += part.inputTextDelta;
      break;
    case "tool-input-available":
      Object.assign(tool(), { state: "input-available", input: part.input, written: undefined });
      break;
    case "tool-approval-request":
      Object.assign(tool(), { state: "approval-requested", approval: { id: part.approvalId } });
      break;
    case "tool-output-available":
      Object.assign(tool(), { state: "output-available", output: part.output });
      break;
    case "tool-output-error":
      Object.assign(tool(), { state: "output-error", errorText: part.errorText });
      break;
    case "tool-output-denied":
      Object.assign(tool(), { state: "output-denied" });
      break;
    case "file":
      parts.push({ type: "file", url: part.url, mediaType: part.mediaType });
      break;
    case "finish":
      message.metadata = { ...message.metadata, ...part.messageMetadata };
      break;
    case "abort":
      message.metadata = { ...message.metadata, reason: "cancelled" };
      break;
    case "error":
      return part.errorText;
  }
}

export const waits = (message) => message.parts.filter((p) => p.state === "approval-requested");

// sent is the message without what is the page's own.
export function sent(message) {
  return { ...message, problem: undefined, working: undefined, parts: message.parts.map((p) => ({ ...p, written: undefined })) };
}
