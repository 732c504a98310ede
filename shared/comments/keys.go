package comments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sunhwa/shared/job"
)

// Attribute names. Several are reserved words of DynamoDB, so every expression
// names all of its attributes through names.
const (
	attrPK         = "pk"
	attrSK         = "sk"
	attrID         = "id"
	attrText       = "text"
	attrOriginal   = "original"
	attrJobID      = "jobId"
	attrVersion    = "version"
	attrPrevious   = "previousVersion"
	attrCount      = "count"
	attrAppliedAt  = "appliedAt"  // RFC 3339, UTC, milliseconds
	attrExpiresAt  = "expiresAt"  // epoch seconds; on tombstones only
	attrStagedAt   = "stagedAt"   // epoch milliseconds; on stage records
	attrRemovingAt = "removingAt" // epoch milliseconds; on stage records whose rows are being removed
)

// Sort keys. A version begins with a ULID, so with a digit, and rows sort before
// the head and the head before the stage records.
const (
	headKey     = "HEAD"
	stagePrefix = "STAGE#"
	// maxRows is what four digits can number.
	maxRows = 10_000
)

func partition(t job.Target) string { return t.TenantKey() + "#" + t.ID }

func rowKey(version string, index int) string { return fmt.Sprintf("%s#%04d", version, index) }

// rowsFrom and rowsTo enclose the rows of a version: '$' follows '#'.
func rowsFrom(version string) string { return version + "#" }
func rowsTo(version string) string   { return version + "$" }

func stageKey(version string) string { return stagePrefix + version }

// parseRow splits a row's sort key. Not ok for anything that is no row.
func parseRow(sk string) (version string, index int, ok bool) {
	version, digits, ok := strings.Cut(sk, "#")
	if !ok || len(digits) != 4 || !strings.Contains(version, ".") {
		return "", 0, false
	}
	index, err := strconv.Atoi(digits)
	return version, index, err == nil && index >= 0
}

// jobOf returns the job that made a version.
func jobOf(version string) job.ID {
	id, _, _ := strings.Cut(version, ".")
	return job.ID(id)
}

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// getStr returns a string attribute, "" when it is absent.
func getStr(it item, name string) string {
	if s, ok := it[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// getNum returns a whole number attribute, 0 when it is absent or none.
func getNum(it item, name string) int64 {
	if n, ok := it[name].(*types.AttributeValueMemberN); ok {
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err == nil {
			return i
		}
	}
	return 0
}

// names aliases attributes for an expression: jobId becomes #jobId.
func names(attrs ...string) map[string]string {
	m := make(map[string]string, len(attrs))
	for _, a := range attrs {
		m["#"+a] = a
	}
	return m
}
