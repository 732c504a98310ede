package explore

import "testing"

func TestMutants_changeWhatIsThere(t *testing.T) {
	names := map[string]bool{}
	for _, m := range Mutants() {
		if _, err := m.Scripts(); err != nil {
			t.Error(err)
		}
		if names[m.Name] {
			t.Errorf("two mutants are called %q", m.Name)
		}
		names[m.Name] = true
	}
}
