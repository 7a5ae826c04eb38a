package responses

import "slices"

// items are the items of an answer in the order in which they began.
type items []*item

// match returns the streamed item whose form raw is: the one at the index, if it is not another one by kind or call id, else the one
// with the id or the call id of raw. Servers count indexes wrong or leave them out, and some give an item a new id in each event. It
// returns nil if none exists. An item of the response object is matched once.
func (all items) match(index int, raw []byte) *item {
	kind, callID := kindOf(text(raw, "type")), text(raw, "call_id")
	fits := func(it *item) bool { return it != nil && !it.settled && it.kind == kind }
	if it := all.at(index); fits(it) && (callID == "" || !it.hasCallID() || it.callID == callID) {
		return it
	}
	if it := all.withID(text(raw, "id")); fits(it) {
		return it
	}
	for _, it := range slices.Backward(all) {
		if callID != "" && fits(it) && it.callID == callID {
			return it
		}
	}
	return nil
}

// withID returns the last item with an id; nil if none exists.
func (all items) withID(id string) *item {
	for _, it := range slices.Backward(all) {
		if id != "" && it.id == id {
			return it
		}
	}
	return nil
}

// at returns the last item that began with an index.
func (all items) at(index int) *item {
	for _, it := range slices.Backward(all) {
		if it.index == index {
			return it
		}
	}
	return nil
}
