// Package preset holds what is known of providers, servers and models, as patches: sets of the few
// keys that differ, which never say anything of the others.
//
// A [Patch] is sparse: a key that is not set leaves what was there, so that no preset changes a
// documented default in passing. [Merge] lays patches over one another. [Named] finds a preset,
// [Profile] what a provider or a server needs, and [For] joins both with what the model needs.
//
//	patch, err := preset.For("openrouter", "deepseek/deepseek-chat")
//	…
//	patch = preset.Merge(patch, own)
//	chain, err := transform.New(patch.Transforms(), nil)
//	model = transform.Wrap(model, chain)
//
// Each name has one spelling. Another word for the same thing is an error that says the right one.
package preset
