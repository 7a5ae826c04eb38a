package main

import (
	"context"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/tool"
)

// catalog returns the resources that the scenarios read, and the prompts that they fill in. hasExtraPrompt adds test_extra_prompt.
func catalog(hasExtraPrompt bool) *mcp.Catalog {
	image := lathe.Blob{MediaType: "image/png", Data: decode(redDot)}
	c := &mcp.Catalog{
		Resources: []mcp.Resource{
			{Name: "static_text", URI: "test://static-text", Description: "A text.", Text: "This is the content of the static text resource."},
			{Name: "static_binary", URI: "test://static-binary", Description: "An image.", MediaType: "image/png", Data: image.Data},
			{Name: "watched", URI: "test://watched-resource", Description: "A text that may change.", Text: "Watched."},
			{Name: "example", URI: "test://example-resource", Description: "A text for prompts.", Text: "Embedded resource content for testing."},
			{Name: "template", URI: "test://template/{id}/data", Description: "Data by id.", MediaType: "application/json",
				Text: `{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}`, Values: map[string][]string{"id": {"123", "456"}}},
		},
		Prompts: []mcp.Prompt{
			{Name: "test_simple_prompt", Description: "Has no arguments.", Messages: []mcp.PromptMessage{{Text: "This is a simple prompt for testing."}}},
			{Name: "test_prompt_with_arguments", Description: "Has two arguments.", Arguments: []mcp.Argument{
				{Name: "arg1", Description: "First test argument", Required: true, Values: []string{"test", "testing", "other"}}, {Name: "arg2", Description: "Second test argument", Required: true}},
				Messages: []mcp.PromptMessage{{Text: "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"}}},
			{Name: "test_prompt_with_embedded_resource", Description: "Embeds a resource.", Arguments: []mcp.Argument{
				{Name: "resourceUri", Description: "URI of the resource to embed", Required: true}},
				Messages: []mcp.PromptMessage{{Resource: "{resourceUri}"}, {Text: "Please process the embedded resource above."}}},
			{Name: "test_prompt_with_image", Description: "Shows an image.",
				Messages: []mcp.PromptMessage{{Blob: &image}, {Text: "Please analyze the image above."}}},
			{Name: "test_input_required_result_prompt", Description: "Asks the person first.", Render: func(ctx context.Context, _ map[string]string) ([]mcp.PromptMessage, error) {
				a, err := tool.AskOne(ctx, "user_context", form("What context should the prompt use?", oneField("context", "string")))
				return []mcp.PromptMessage{{Text: "Context: " + string(a.Form)}}, err
			}},
		},
	}
	if hasExtraPrompt {
		c.Prompts = append(c.Prompts, mcp.Prompt{Name: "test_extra_prompt", Description: "Comes and goes.", Messages: []mcp.PromptMessage{{Text: "Here."}}})
	}
	return c
}
