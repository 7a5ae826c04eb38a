package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Default and maximum number of items in a page of input items.
const (
	defaultItems = 20
	maxItems     = 100
)

// itemPrefixes maps the type of an item to the prefix of its id.
var itemPrefixes = map[string]string{"message": "msg_", "function_call": "fc_", "function_call_output": "fco_", "reasoning": "rs_",
	"custom_tool_call": "ctc_", "custom_tool_call_output": "ctco_"}

// An inputItem is the JSON of one input item, which includes its id.
type inputItem struct {
	id   string
	json json.RawMessage
}

// inputList returns the items of a JSON array. An item without an id gets one that is derived from answer, the id of the
// response.
func inputList(items []byte, answer string) (list []inputItem) {
	for el := range rawjson.Elements(items) {
		one := inputItem{id: rawjson.TextAt(el, "id"), json: json.RawMessage(el)}
		if one.id == "" {
			one.id = cmp.Or(itemPrefixes[rawjson.TextAt(el, "type")], "item_") + answer + "_in" + strconv.Itoa(len(list))
			head := append(rawjson.AppendQuote([]byte(`{"id":`), one.id), ',')
			one.json = append(head, el[1:]...)
		}
		list = append(list, one)
	}
	return list
}

// An itemPage is a page of a list of items in the format of OpenAI's API.
type itemPage struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	FirstID *string           `json:"first_id"`
	LastID  *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

// pageOf returns the page of the list that the query parameters limit and after select.
func pageOf(list []inputItem, r *http.Request) (*itemPage, *problem) {
	query := r.URL.Query()
	limit, p := number(query, "limit", defaultItems, maxItems)
	if p != nil {
		return nil, p
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(list, func(one inputItem) bool { return one.id == after })
		if i < 0 {
			return nil, badRequest("after", "The response has no input item with this id.")
		}
		list = list[i+1:]
	}
	page := &itemPage{Object: "list", Data: []json.RawMessage{}, HasMore: len(list) > limit}
	for i := range list[:min(len(list), limit)] {
		page.Data = append(page.Data, list[i].json)
		if i == 0 {
			page.FirstID = &list[i].id
		}
		page.LastID = &list[i].id
	}
	return page, nil
}
