// The dialog of what a chat asks of its runs beside its messages.

import { Dialog } from "../components/basics";
import { visible } from "../text/visible.js";
import { chat } from "./chat";
import { options, setOptions, wrong } from "./options";

export interface ChatTool { name: string; description: string; effect: string; advertised: boolean }

// OptionsDialog changes what this chat asks of its runs.
export function OptionsDialog({ tools, close }: { tools: ChatTool[]; close: () => void }) {
  const o = options.value, set = (change: Parameters<typeof setOptions>[1]) => setOptions(chat.id, change);
  const usable = tools.filter((t) => t.advertised);
  return <Dialog title="Options of this chat" close={close}>
    <div class="stack chat-options">
      <p class="soft small">They hold for the next messages of this chat, and are kept in this browser.</p>
      <label for="system">System text</label>
      <textarea id="system" rows={4} value={o.system} placeholder="What the model should know before the conversation" onInput={(e) => set({ system: e.currentTarget.value })} />
      <label for="temperature">Temperature, 0 to 2</label>
      <input id="temperature" inputMode="decimal" autocomplete="off" placeholder="as the model has it" value={o.temperature ?? ""} onInput={(e) => set({ temperature: e.currentTarget.value.trim() })} />
      <label for="max-tokens">Longest answer, in tokens</label>
      <input id="max-tokens" inputMode="numeric" autocomplete="off" placeholder="as the model has it" value={o.maxTokens ?? ""} onInput={(e) => set({ maxTokens: e.currentTarget.value.trim() })} />
      {wrong(o) && <p class="problem" role="alert">{wrong(o)} It is not sent.</p>}
      <label for="mode">Tool choice</label>
      <select id="mode" value={o.mode} onChange={(e) => set({ mode: e.currentTarget.value as typeof o.mode })}>
        <option value="">as the gateway has it</option><option value="relaxed">the model may call tools</option><option value="enforced">the model must call a tool</option><option value="disabled">no tools</option>
      </select>
      <fieldset><legend>Tools</legend>
        <label class="check"><input type="checkbox" checked={o.tools === null} onChange={(e) => set({ tools: e.currentTarget.checked ? null : usable.map((t) => t.name) })} /> all that this gateway offers ({usable.length})</label>
        {o.tools !== null && usable.map((t) => <label class="check" key={t.name}><input type="checkbox" checked={o.tools!.includes(t.name)} onChange={(e) => set({ tools: e.currentTarget.checked ? [...o.tools!, t.name] : o.tools!.filter((n) => n !== t.name) })} /> <b class="mono">{visible(t.name)}</b> <span class="soft small">{visible(t.description).slice(0, 100)}</span></label>)}
      </fieldset>
    </div>
  </Dialog>;
}
