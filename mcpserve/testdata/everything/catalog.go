package main

import (
	"context"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/mcpserve"
)

// catalog is what the scenarios read, and the prompts that they fill in.
func catalog(extra bool) *mcpserve.Catalog {
	image := lathe.Blob{MediaType: "image/png", Data: decode(redDot)}
	c := &mcpserve.Catalog{
		Resources: []mcpserve.Resource{
			{Name: "static_text", URI: "test://static-text", Description: "A text.", Text: "This is the content of the static text resource."},
			{Name: "static_binary", URI: "test://static-binary", Description: "An image.", MediaType: "image/png", Data: image.Data},
			{Name: "watched", URI: "test://watched-resource", Description: "A text that may change.", Text: "Watched."},
			{Name: "example", URI: "test://example-resource", Description: "A text for prompts.", Text: "Embedded resource content for testing."},
			{Name: "template", URI: "test://template/{id}/data", Description: "Data by id.", MediaType: "application/json",
				Text: `{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}`, Values: map[string][]string{"id": {"123", "456"}}},
		},
		Prompts: []mcpserve.Prompt{
			{Name: "test_simple_prompt", Description: "Has no arguments.", Messages: []mcpserve.PromptMessage{{Text: "This is a simple prompt for testing."}}},
			{Name: "test_prompt_with_arguments", Description: "Has two arguments.", Arguments: []mcpserve.Argument{
				{Name: "arg1", Description: "First test argument", Required: true, Values: []string{"test", "testing", "other"}}, {Name: "arg2", Description: "Second test argument", Required: true}},
				Messages: []mcpserve.PromptMessage{{Text: "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"}}},
			{Name: "test_prompt_with_embedded_resource", Description: "Embeds a resource.", Arguments: []mcpserve.Argument{
				{Name: "resourceUri", Description: "URI of the resource to embed", Required: true}},
				Messages: []mcpserve.PromptMessage{{Resource: "{resourceUri}"}, {Text: "Please process the embedded resource above."}}},
			{Name: "test_prompt_with_image", Description: "Shows an image.",
				Messages: []mcpserve.PromptMessage{{Blob: &image}, {Text: "Please analyze the image above."}}},
			{Name: "test_input_required_result_prompt", Description: "Asks the person first.", Render: func(ctx context.Context, _ map[string]string) ([]mcpserve.PromptMessage, error) {
				a, err := lathe.AskOne(ctx, "user_context", form("What context should the prompt use?", oneField("context", "string")))
				return []mcpserve.PromptMessage{{Text: "Context: " + string(a.Form)}}, err
			}},
		},
	}
	if extra {
		c.Prompts = append(c.Prompts, mcpserve.Prompt{Name: "test_extra_prompt", Description: "Comes and goes.", Messages: []mcpserve.PromptMessage{{Text: "Here."}}})
	}
	return c
}
