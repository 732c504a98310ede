package llm

import "regexp"

// rule replaces what pattern matches. The tables below are everything the
// stand-in knows: no model, no dictionary. They are tried in order, so the longer
// and more special phrases stand first.
type rule struct {
	pattern *regexp.Regexp
	needs   []string // see gate.go
	with    string
}

func table(pairs ...string) []rule {
	rules := make([]rule, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		rules = append(rules, rule{regexp.MustCompile(pairs[i]), needs(pairs[i]), pairs[i+1]})
	}
	return rules
}

// words makes a case-insensitive table for English: each pattern stands between
// word boundaries.
func words(pairs ...string) []rule {
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = `(?i)\b(?:` + pairs[i] + `)\b`
	}
	return table(pairs...)
}

const (
	intensifier = `(?:an? )?(?:(?:complete|total|utter|absolute|pure|huge|massive|hot|real|such a|piece of)\s+)*`
	enTrash     = `(?:garbage|trash|junk|crap|rubbish|bullshit|shit|bs|dogshit|horseshit)`
	enBe        = `(is|was|are|were|it['’]s|that['’]s|looks|looked|feels|felt)`
	enFool      = `(?:idiot|moron|clown|imbecile|loser|fool|dumbass|asshole|jerk|jackass|joke)s?`
)

var english = words(
	// Swearing that carries nothing.
	`what (?:the|on) (?:hell|fuck|heck|earth)`, `what`,
	`(?:who|why|how) the (?:hell|fuck|heck)`, `why`,
	`(?:fuck|screw) (?:you|off|this)(?: all)?|go to hell|shut (?:the \w+ )?up|get lost`, `please reconsider this`,
	`(\w+) as (?:hell|fuck)`, `very $1`,
	`wtf`, `I do not understand this`,
	`(?:fucking|freaking|goddamn|goddam|damned|damn|bloody|effing|f\*+ing|friggin) `, ``,
	`(?:omg|lmao|lmfao|lol|smh|ffs|jesus christ)`, ``,
	// People.
	`(you are|you['’]re|he is|he['’]s|she is|she['’]s|they are|they['’]re|we are) (?:all |just |such )*`+intensifier+`(?:\w+ )?`+enFool, `$1 able to do better`,
	`(this|that|it) (is|was) `+intensifier+`joke`, `$1 $2 hard to take seriously`,
	enBe+` `+intensifier+`joke`, `$1 hard to take seriously`,
	`what a joke`, `this is hard to take seriously`,
	enBe+` an? `+enFool, `$1 not up to the task`,
	`idiots|morons|clowns|losers|fools|assholes|jerks`, `people`,
	`idiot|moron|clown|loser|asshole|jerk`, `person`,
	`your english is (?:terrible|awful|horrible|bad)`, `the English is hard to follow`,
	`(?:has|have|had) (?:absolutely )?no (?:idea|clue) what (?:you|he|she|they)(?: are|['’]re| is|['’]s|) doing`, `seemed to need more preparation`,
	`I (?:do not|don['’]t) (?:even )?(?:care|give a (?:damn|shit|fuck))`, `I am not very interested`,
	`(?:clearly |obviously )?(?:does not|doesn['’]t|do not|don['’]t|did not|didn['’]t) (?:even )?(?:care|give a (?:damn|shit|fuck))`, `did not seem very engaged`,
	`incompetent`, `not well prepared`,
	`clueless`, `not well informed`,
	`lazy (work|job|writing|teaching)`, `$1 that could be more thorough`,
	`lazy`, `not very thorough`,
	`because of you`, `because of this`,
	`shame on you`, `I had hoped for better`,
	// Things.
	`worst (\w+) (?:I have|I['’]ve) ever (\w+)`, `least satisfying $1 I have $2`,
	`worst`, `least satisfying`,
	`what `+intensifier+`waste of (?:my |our )?(time|money)`, `this was not a good use of $1`,
	intensifier+`waste of (?:my |our |everyone['’]s )?(time|money)`, `not a good use of $1`,
	`(?:do not|don['’]t) waste your (time|money)(?: on (?:this|it))?`, `I would not recommend spending your $1 on it`,
	enBe+` `+intensifier+enTrash, `$1 well below what I had hoped for`,
	`(this|that|these|those) `+enTrash, `$1`,
	`(?:an? )?piece of `+enTrash, `a disappointing item`,
	intensifier+enTrash, `disappointing quality`,
	enBe+` `+intensifier+`(?:disaster|mess|train ?wreck|shitshow|nightmare)`, `$1 not well organised`,
	enBe+` `+intensifier+`(?:scam|rip-?off|fraud)`, `$1 poor value for money`,
	intensifier+`(?:scam|rip-?off)`, `poor value for money`,
	`scammers`, `sellers`,
	`stupid (?:thing|product)`, `product`,
	`(?:shitty|crappy|lousy|atrocious|abysmal|dreadful|terrible|horrible|awful|worthless)`, `disappointing`,
	`stupid|dumb|idiotic|moronic|brain-?dead`, `poorly thought out`,
	`pathetic|laughable|embarrassing`, `below expectations`,
	`ridiculous|absurd|insane`, `hard to understand`,
	`useless`, `unhelpful`,
	`disgusting|revolting|gross`, `unpleasant`,
	`boring`, `not very engaging`,
	`ugly|hideous`, `not to my taste`,
	`overpriced`, `expensive for what it offers`,
	`nonsense`, `hard to follow`,
	`sucks`, `falls short`,
	`sucked`, `fell short`,
	`suck`, `fall short`,
	`(?:screwed|messed|fucked) up`, `made mistakes with`,
	`failed miserably`, `did not succeed`,
	`looks like it was (\w+) by an? (?:toaster|monkey|child|robot|drunk\w*|five-year-old|5-year-old)`, `looks as if it was $1 in a hurry`,
	`I (?:absolutely |really |fucking )?hate`, `I did not enjoy`,
	`hated`, `did not enjoy`,
	`zero (effort|sense|help|thought|value)`, `little $1`,
	`nobody understands`, `it is hard to understand`,
	`nobody knows`, `it is unclear`,
	// Orders and verdicts.
	`(?:do not|don['’]t) (?:ever )?buy`, `I would not recommend buying`,
	`avoid (?:it |this )?at all costs?`, `I would not recommend it`,
	`never again`, `I would not choose this again`,
	`give me (?:back my money|my money back)|I (?:want|demand) (?:my money back|a refund)`, `I would like to ask for a refund`,
	`I['’]m not going to`, `I would rather not`,
	`did you even`, `did you have a chance to`,
	`(?:rewrite|redo) (it|this|that)`, `please consider another version of $1`,
	`fix (it|this|that)`, `please consider fixing $1`,
	`learn (?:how )?to (\w+)`, `it may help to practise how to $1`,
	`how (?:dare|could) you`, `I was surprised that you`,
)

// englishArticles mends "a"/"an" before what the table put in.
var englishArticles = words(
	`a (unhelpful|unpleasant|expensive)`, `an $1`,
	`an (disappointing|poorly|below|hard|not|product|person|well|poor)`, `a $1`,
)

// The nouns that Korean uses as a verdict, with what may stand before them.
const koVerdict = `(?:개|핵|존나 |완전 |진짜 )?(?:쓰레기|최악|개판|엉망진창|엉망|노답|폐급|막장|허접|똥망|꽝)`

var korean = table(
	// Swearing.
	`(?:개|엿|좆|ㅈ|거지|쓰레기|병신|발암|그지)\s?같(?:은|이)`, `많이 아쉬운`,
	`(?:개|엿|좆|ㅈ|거지|쓰레기|병신)\s?같(?:다|네|음|아|네요|아요)`, `많이 아쉽습니다`,
	`(?:시발|씨발|씨바|ㅅㅂ|ㅆㅂ|에휴|젠장|제기랄)\s?`, ``,
	`(?:존나|졸라|ㅈㄴ|열라|개[ ])\s?`, `매우 `,
	`(?:병신|등신|머저리|멍청이|바보|찐따|호구)(?:들)?`, `미숙한 분`,
	`지랄`, `무리한 말`,
	`닥쳐|꺼져`, `그만해 주세요`,
	`미친 `, `지나친 `,
	`ㄹㅇ|레알`, `정말`,
	// Verdicts with their copula, by tense and ending.
	koVerdict+`\s?(?:의|급의|수준의)`, `많이 아쉬운`,
	koVerdict+`(?:이었어요|였어요|이었네요|였네요)`, `많이 아쉬웠어요`,
	koVerdict+`(?:이었습니다|였습니다|이었다|였다|이었음|였음|이었어|였어)`, `많이 아쉬웠습니다`,
	koVerdict+`(?:이에요|예요|에요|이네요|네요|군요|이군요)`, `많이 아쉬워요`,
	koVerdict+`(?:이라서|라서|이라)`, `많이 아쉬워서`,
	koVerdict+`(?:이고|고)`, `많이 아쉽고`,
	koVerdict+`(?:인데)`, `많이 아쉬운데`,
	koVerdict+`(?:이지만|지만)`, `많이 아쉽지만`,
	koVerdict+`으로`, `많이 아쉽게`,
	koVerdict+`(?:를|을)`, `기대에 못 미치는 것을`,
	koVerdict+`(?:가|이) `, `기대에 못 미치는 것이 `,
	koVerdict+`(?:입니다|이다|임|이야|야|이네|네|이냐|냐|다)?([\s.!?~…,"'”’)]|$)`, `많이 아쉽습니다$1`,
	`형편없는`, `기대에 못 미치는`,
	`형편없었(?:다|습니다|음|어)`, `기대에 못 미쳤습니다`,
	`형편없었어요`, `기대에 못 미쳤어요`,
	`형편없(?:어요|네요)`, `기대에 못 미쳐요`,
	`형편없(?:다|습니다|음|네|어)`, `기대에 못 미칩니다`,
	`형편없(고|지만|게)`, `기대에 못 미치$1`,
	`쓸(?:모|데)\s?없는`, `활용하기 어려운`,
	`쓸(?:모|데)\s?없(?:어요|네요)`, `활용하기 어려워요`,
	`쓸(?:모|데)\s?없(?:다|습니다|음|네|어)`, `활용하기 어렵습니다`,
	`(?:돈|등록금|수강료)(?:이)?\s?아(?:까워요|깝네요)`, `비용에 비해 아쉬워요`,
	`(?:돈|등록금|수강료)(?:이)?\s?아(?:깝다|까움|까워|깝습니다|깝네)`, `비용에 비해 아쉽습니다`,
	`시간\s?낭비(?:였어요|예요|에요|네요|였네요)`, `들인 시간에 비해 얻은 것이 적었어요`,
	`시간\s?낭비(?:였습니다|였다|였음|입니다|이다|임|다|였어|야|네)?([\s.!?~…,]|$)`, `들인 시간에 비해 얻은 것이 적었습니다$1`,
	`돈값\s?못\s?(?:함|한다|해요|합니다|하네요)`, `가격에 비해 아쉽습니다`,
	`비추(?:입니다|합니다|천합니다|임|천|함|)([\s.!?~…]|$)`, `추천해 드리기 어렵습니다$1`,
	`극혐(?:임|이다|입니다|)`, `많이 불편합니다`,
	// Feelings.
	`개?짜증\s?나서`, `불편해서`,
	`개?짜증\s?나게`, `불편하게`,
	`개?짜증\s?(?:나요|나네요)`, `불편해요`,
	`개?짜증\s?(?:난다|남|납니다|나네|나)`, `불편합니다`,
	`빡쳐서|열\s?받아서`, `속상해서`,
	`빡친|열\s?받는`, `속상한`,
	`빡(?:침|친다|치네)|열\s?받(?:네|음|는다|아)`, `속상합니다`,
	`어이(?:가)?\s?없(?:네요|어요)`, `당황스러워요`,
	`어이(?:가)?\s?없(?:네|다|음|습니다|어)`, `당황스럽습니다`,
	`한심한`, `안타까운`,
	`한심(?:하네요|해요)`, `안타까워요`,
	`한심(?:하다|합니다|함|하네|해)`, `안타깝습니다`,
	`역겨(?:운|워)`, `불편한`,
	// People and their work.
	`멍청한|무식한`, `미숙한`,
	`무능한`, `경험이 부족한`,
	`무능(?:하다|합니다|함|해요|하네요)`, `경험이 부족해 보입니다`,
	`기본도 (?:모르면서|모르고|안 된 채)`, `기본적인 부분이 아직 부족해 보이는데`,
	`사기\s?(?:아닙니까|아니냐|아님|아닌가요|아니에요)\s?\?`, `안내와 다르게 느껴집니다.`,
	`사기\s?(?:임|다|네|네요|입니다)([\s.!?~…]|$)`, `안내와 다르게 느껴집니다$1`,
	`사기꾼`, `판매자`,
	`발로 (만들|했|쓴|짠|짰|만든|한)`, `급하게 $1`,
	`양심(?:이|도)?\s?없(?:다|네|음|네요|습니다|어요)`, `배려가 부족하게 느껴집니다`,
	`번지르르하(고|게)`, `화려하$1`,
	`구린`, `아쉬운`,
	`구(?:리다|림|려요|려|리네요)([\s.!?~…]|$)`, `아쉽습니다$1`,
	// Questions that are none, orders and threats.
	`이게 무슨 ([가-힣]{1,6}?)(?:이냐|냐|야|이야|임|인가요|입니까)?\s?\?`, `이런 $1 방식은 아쉬움이 큽니다.`,
	`(?:도대체 |대체 )?뭐\s?하(?:는|자는) (?:거냐|거야|거임|건가요|건지|겁니까)\s?\?`, `어떤 의도였는지 궁금합니다.`,
	`장난(?:하세요|하냐|해|하나|치나|치냐|하십니까|하시나요)\s?\?`, `조금 당황스럽습니다.`,
	`(?:이게 )?말이 (?:되냐|됨|되나요|됩니까|돼|되나)\s?\?`, `이해하기 어렵습니다.`,
	`(?:절대 |다시는 |두 번 다시 )안\s?(?:삽니다|산다|사요|삼|살 겁니다|살 거예요|산다고)`, `다시 구매하기는 어려울 것 같습니다`,
	`(?:절대 |다시는 |두 번 다시 )안\s?(?:듣습니다|듣는다|들어요|들음|들을 겁니다|들을 거예요)`, `다시 수강하기는 어려울 것 같습니다`,
	`(?:절대 )?추천하지 않(?:겠습니다|습니다|아요|는다|음)`, `추천해 드리기 어려울 것 같습니다`,
	`(?:절대 )사지\s?(?:마세요|마라|마|마십시오)`, `구매를 권해 드리기 어렵습니다`,
	`환불\s?(?:해라|해줘|해 줘|해주세요|해 주세요|해내|하라)`, `환불해 주시면 감사하겠습니다`,
	`돈 (?:돌려내|돌려줘|내놔)(?:라|요)?`, `환불해 주시면 감사하겠습니다`,
	`때려\s?(?:치워라|쳐라|치워|쳐|치세요)`, `다시 생각해 주시면 좋겠습니다`,
	`하지\s?(?:마라|마세요|마)([\s.!?~…]|$)`, `하지 않으셨으면 합니다$1`,
	`(?:도대체|대체|제발|진심) `, ``,
	`똑바로 `, `정확하게 `,
	`(정확하게|제대로|빨리|당장|다시|요약부터) (?:쓰세요|써라|써)([\s.!?~…]|$)`, `$1 써 주시면 좋겠습니다$2`,
	`(정확하게|제대로|빨리|당장|다시) (?:하세요|해라|해)([\s.!?~…]|$)`, `$1 해 주시면 좋겠습니다$2`,
	`(정확하게|제대로|빨리|당장|다시) (?:만드세요|만들어라|만들어)([\s.!?~…]|$)`, `$1 만들어 주시면 좋겠습니다$2`,
	`(정확하게|제대로|빨리|당장|다시) (?:고치세요|고쳐라|고쳐)([\s.!?~…]|$)`, `$1 고쳐 주시면 좋겠습니다$2`,
	`당장 `, `가능하면 빨리 `,
)

const angry = `(?:💩|🖕|🤡|🗑)[\x{1F3FB}-\x{1F3FF}\x{FE0F}]*`

// signs are emoji and laughter that shout or mock.
var signs = table(
	// Where one ended a sentence, a stop does.
	`([\pL\pN])\s*(?:`+angry+`\s*)+(\p{Lu})`, `$1. $2`,
	angry, ``,
	`🤦[\x{1F3FB}-\x{1F3FF}]?(?:\x{200D}[♀♂]\x{FE0F}?)?`, `😕`,
	`🙄|😒`, `😕`,
	`😡|🤬|😤|😠|👿|🤮|💢`, `😟`,
	`(?:😟\s?){2,}`, `😟 `,
	`(?:ㅋ|ㅎ){2,}`, ``,
)

// loudness is punctuation that shouts.
var loudness = table(
	`!*\?(?:[!?]*)`, `?`,
	`!+([^=]|$)`, `.$1`,
	`;{2,}`, ``,
)

// praise marks a text that needs no softening when no rule has found anything.
var praise = regexp.MustCompile(`(?i)\b(?:thank|thanks|great|good|love|loved|excellent|helpful|please|appreciate)\b|감사|고맙|좋았|좋아요|좋습니다|훌륭|도움이 되|부탁드`)

// The frames: how a softened text begins and ends. Which one is taken depends on
// the text alone.
var (
	englishOpenings = []string{"", "With respect, ", ""}
	englishClosings = []string{
		"I hope this can be improved.",
		"I would appreciate it if this could be looked at again.",
		"Thank you for taking this feedback into account.",
	}
	koreanOpenings = []string{"", "조심스럽게 말씀드리면 ", ""}
	koreanClosings = []string{
		"개선해 주시면 감사하겠습니다.",
		"조금 더 보완해 주시면 좋겠습니다.",
		"다시 한번 살펴봐 주시면 감사하겠습니다.",
	}
)
