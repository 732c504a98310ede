package main

// introduce says what runs here, and plainly which parts are not the real thing.
func (d *demo) introduce() {
	d.line("Sunhwa rewrites a target's comments politely, as one job. This is the whole flow, once.")
	d.line("%s from %s. The API is at %s.", count(len(d.comments), "comment"), d.source, d.stack.URL())
	d.line("")
	standIns := false
	for _, p := range d.stack.Parts() {
		mark := "real"
		if p.StandIn {
			mark, standIns = "STAND-IN", true
		}
		d.line("   %-9s %-9s %s", p.Name, mark, p.What)
	}
	if standIns {
		d.line("   Stand-ins speak the real protocols, but they are not the real servers; the one for")
		d.line("   the LLM is a table of rules and no model. The functions' code is the cloud's.")
	}
	d.warn()
}

// warn shows what of the configuration has another effect here than expected.
func (d *demo) warn() {
	for _, w := range d.stack.Warnings() {
		for i, line := range wrap(w, d.width-13) {
			mark := ""
			if i == 0 {
				mark = "WARNING"
			}
			d.line("   %-9s %s", mark, line)
		}
	}
}

// farewell says what to try next.
func (d *demo) farewell() {
	d.line("\nAll steps did what they promise. Next:")
	d.line("   make demo INPUT=my.csv OUT=result.json   your own comments (.json, .jsonl, .csv with id and text)")
	d.line("   make run                                 keeps the API up on http://127.0.0.1:8080")
	d.line("   REDIS_ADDR=127.0.0.1:6379 make demo      with a real Redis")
	d.line("   LLM_BASE_URL=… LLM_API_KEY=… LLM_MODEL=… make demo   with a real model")
}
