"""What issuers' tokens look like: our own table of public facts (what a token begins with, its letters, its length).

A row is a rule's name, what is looked for (several, apart by spaces), and the rest. In the rest a letter before a brace is an
alphabet of `ALPHABETS`, everything else is a pattern. In `INSIDE` what is looked for stands so many characters after the
beginning, and the pattern is that of the whole.
"""

from __future__ import annotations

from toolgate.core.late_pattern import late_pattern

ALPHABETS = {
    "w": "[A-Za-z0-9]", "W": "[A-Za-z0-9_-]", "h": "[a-f0-9]", "H": "[A-Fa-f0-9]", "l": "[a-z0-9]", "u": "[A-Z0-9]", "d": "[0-9]",
    "b": "[A-Za-z0-9+/]", "v": "[A-Za-z0-9_.=-]", "a": "[A-Za-z]", "c": "[a-hA-H0-9]",
}  # fmt: skip
_UUID = "h{8}-h{4}-h{4}-h{4}-h{12}"
_LETTER = late_pattern(r"(?<!\\)([A-Za-z])(?=\{)")


def pattern_of(shape: str) -> str:
    """The pattern that a shape of these tables stands for."""
    return _LETTER.sub(lambda letter: ALPHABETS.get(letter[1], letter[1]), shape.replace("UUID", _UUID))


PREFIXED = r"""
1password-secret-key | A3- | u{6}-(?:u{11}|u{6}-u{5})-u{5}-u{5}-u{5}
1password-service-token | ops_eyJ | b{180,2000}={0,3}
adobe-client-secret | p8e- | W{32}
adyen-api-key | AQE | [a-z]hmf[a-z]b{60,200}={0,2}
age-secret-key | AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1 | u{58,80}
airtable-token | pat | w{14}\.h{64}
aiven-token | AVNS_ | W{19,60}
alchemy-token | alcht_ | w{30}
alibaba-access-key | LTAI | w{12,24}
anthropic-key | sk-ant- | (?:api|admin)d{2}-W{93}AA
anthropic-oauth-token | sk-ant-oat sk-ant-ort sk-ant-sid | d{2}-W{80,120}
anyscale-key | esecret_ | w{24,40}
apify-token | apify_api_ | w{34,40}
artifactory-key | AKCp | w{60,75}
artifactory-key | AKC | w{16,59}
artifactory-password | AP0 AP1 AP2 AP3 AP4 AP5 AP6 AP7 AP8 AP9 APA APB APC APD APE APF | w{20,60}
artifactory-reference-token | cmVmd | w{59}
asana-token | 0/ 1/ | d{13,16}:h{32}
asana-token | 2/ | d{13,16}/d{13,16}:h{32}
atlassian-token | ATATT3 ATCTT3 | [A-Za-z0-9_=-]{60,255}
atlassian-bitbucket-password | ATBB | w{32}
aws-access-key | AKIA ASIA ABIA ACCA | u{16}
aws-access-key | A3T | u{17}
aws-appsync-key | da2- | l{26}
aws-bedrock-key | ABSK | b{109,269}={0,2}
aws-bedrock-key | bedrock-api-key- | b{20,2000}={0,2}
aws-mws-key | amzn.mws. | UUID
axiom-token | xaat- xapt- | UUID
braintree-token | access_token$production$ access_token$sandbox$ | l{16}\$h{32}
brave-search-key | BSA | W{27,29}
browserbase-key | bb_live_ bb_test_ | W{27,40}
buildkite-token | bkua_ bkat_ | h{40}
cerebras-key | csk- | l{48}
checkout-key | sk_sbox_ | l{26,28}
circleci-token | CCIPAT_ CCIPRJ_ | w{20,24}_h{40}
clickhouse-key | 4b1d | w{38}
clickup-token | pk_ | d{6,9}_u{32}
clojars-token | CLOJARS_ clojars_ | l{60}
cloudflare-origin-ca-key | v1.0- | h{24}-h{146}
cockroach-key | CCDB1_ | w{22}_w{40}
composio-key | ak_ | w{20}
contentful-token | CFPAT- | W{43}
crates-io-token | cio | w{32}
cursor-key | key_ | h{64}
databricks-token | dapi dkea | h{32}(?:-d{1})?
datadog-key | ddapp_ | w{34}
dbt-token | dbtc_ dbtu_ | W{40,60}
defined-networking-token | dnkey- | W{26}-W{52}
deno-token | ddp_ ddw_ ddo_ | w{36}
digitalocean-token | dop_v1_ doo_v1_ dor_v1_ | h{64}
digitalocean-spaces-key | DO00 DO80 | u{16}
docker-token | dckr_pat_ dckr_oat_ | W{20,40}
doppler-token | dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. | (?:[a-z0-9_-]{2,35}\.)?w{40,44}
dropbox-token | sl. | (?:u\.)?[A-Za-z0-9_=-]{130,160}
duffel-token | duffel_test_ duffel_live_ | [A-Za-z0-9_=-]{43}
dynatrace-token | dt0c01. dt0s01. dt0s02. dt0s16. | w{24}\.w{64}
e2b-key | e2b_ | h{40}
easypost-key | EZAK EZTK | w{54}
elastic-key | essu_ | b{50,120}={0,2}
elevenlabs-key | sk_ | h{48}
endorlabs-key | endr+ | w{16}
facebook-token | EAAB EAAC EAAD EAAE EAAF EAAG EAAH EAAI EAAJ EAAM EAAN EAAO EAAP EAAR EAAS EAAT EAAU EAAV EAAW EAAX EAAY EAAZ | w{90,400}
figma-token | figd_ figo_ figor_ figu_ figur_ | W{40,60}
firecrawl-key | fc- | h{32}
fireworks-key | fw_ | w{22,24}
flutterwave-key | FLWSECK_TEST- FLWSECK- FLWPUBK_TEST- FLWPUBK- | (?:c{32}-X|c{12})
fly-io-token | fo1_ | W{43}
fly-io-token | fm1a_ fm1r_ fm2_ | b{100,2000}={0,3}
frame-io-token | fio-u- | [A-Za-z0-9_=-]{64}
friendli-token | flp_ | w{40,50}
github-token | ghp_ gho_ ghu_ ghs_ ghr_ | w{36,255}
github-token | github_pat_ | [A-Za-z0-9_]{40,255}
gitlab-token | glpat- glrt- | (?:td{1}_)?W{27,300}\.[0-9a-z]{2}\.?l{7}
gitlab-token | glpat- gldt- glft- glsoat- glrt- glffct- glwt- GR1348941 | W{20,50}
gitlab-token | glcbt- | (?:w{1,5}_)?W{20,50}
gitlab-token | glimt- | W{25}
gitlab-token | glptt- | H{40}
gitlab-token | glagent- | W{50,1024}
gitlab-token | gloas- | W{64}
gitlab-session-cookie | _gitlab_session= | l{32}
google-api-key | AIza | W{35}
google-oauth-secret | GOCSPX- | W{28}
google-oauth-token | ya29. | W{30,1000}
google-refresh-token | 1//0 | W{40,120}
google-fcm-key | :APA91b | W{120,180}
grafana-token | glc_ | b{32,400}={0,3}
grafana-token | glsa_ | w{32}_H{8}
grafana-key | eyJrIjoi | b{60,400}={0,3}
groq-key | gsk_ | w{48,60}
harness-token | pat. sat. | W{22}\.w{24}\.w{20}
hashicorp-vault-token | hvs. hvb. hvr. | W{24,300}
hashicorp-vault-token | s. | w{24}
helicone-key | sk-helicone- pk-helicone- | W{24,60}
heroku-key | HRKU-AA | W{58}
heroku-key | HRKU- | UUID
honeycomb-key | hcaik_ hcxik_ hcbik_ hcalk_ hcxlk_ | l{50,64}
hubspot-token | pat-na1- pat-na2- pat-eu1- | UUID
huggingface-token | hf_ | w{34,40}
huggingface-organization-token | api_org_ | w{34}
infisical-token | st. | h{24}\.h{32}\.h{32}
infracost-token | ico- | w{32}
inngest-key | signkey-prod- signkey-test- signkey-branch- | h{32,64}
instagram-token | IGQV IGAA | W{100,300}
intercom-token | dG9rO | b{40,80}={0,2}
intra42-secret | s-s4t2ud- s-s4t2af- | h{64}
jina-key | jina_ | W{60}
langfuse-key | sk-lf- | UUID
langsmith-key | lsv2_pt_ lsv2_sk_ | h{32}_h{10}
langsmith-key | ls__ | h{32}
launchdarkly-key | sdk- mob- api- | UUID
linear-key | lin_api_ | w{40}
linear-oauth-token | lin_oauth_ | h{64}
llama-index-key | llx- | w{48}
mailersend-token | mlsn. | h{64}
mailgun-key | key- | h{32}
mailgun-public-key | pubkey- | h{32}
mapbox-token | sk. pk. tk. | W{55,120}\.W{20,24}
mercadopago-token | APP_USR- | d{12,20}-d{6}-h{32}-d{6,12}
modal-token | ak- as- | w{22}
mongodb-atlas-key | mdb_sa_sk_ | W{36,44}
n8n-key | n8n_api_ | h{40}
neon-key | napi_ | l{64}
neon-password | npg_ | w{12,16}
netlify-token | nfp_ nfo_ nfb_ nfu_ nfc_ | w{36}
new-relic-key | NRAK- | w{27}
new-relic-insert-key | NRII- NRIQ- | W{32}
new-relic-browser-key | NRJS- | h{19}
new-relic-admin-key | NRAA- | h{27}
notion-token | ntn_ | d{11}w{35}
notion-token | secret_ | w{43}
npm-token | npm_ | w{36}
npm-token | NpmToken. | UUID
nuget-key | oy2 | l{43}
nvidia-key | nvapi- | W{60,70}
octopus-deploy-key | API- | u{26}
onesignal-key | os_v2_app_ os_v2_org_ | l{90,110}
openai-key | sk-proj- sk-svcacct- sk-admin- sk-None- sk-service- | W{40,220}
openai-key | sk- | w{40,64}
openai-compatible-key | sk- | h{32}
openrouter-key | sk-or- | (?:vd{1}-)?h{32,128}
openshift-token | sha256~ | W{43}
paddle-key | pdl_live_apikey_ pdl_sdbx_apikey_ | l{26}_w{22}_w{3}
perplexity-key | pplx- | w{40,56}
pinecone-key | pcsk_ | w{4,6}_w{50,70}
plaid-access-token | access-sandbox- access-development- access-production- | UUID
planetscale-token | pscale_tkn_ pscale_oauth_ pscale_pw_ | v{32,64}
polar-token | polar_pat_ polar_oat_ polar_whs_ | W{32,60}
portainer-token | ptr_ | b{43}=
posthog-key | phx_ phs_ | W{40,50}
postman-key | PMAK- | H{24}-H{34}
postman-collection-key | PMAT- | u{26}
prefect-token | pnu_ pnb_ | w{36}
pubnub-key | sec-c- | (?:UUID|w{48})
pulumi-token | pul- | h{40}
pypi-token | pypi-AgEI pypi-AgEN | W{50,1000}
razorpay-key | rzp_live_ rzp_test_ | w{14}
readme-token | rdme_ | l{70}
render-key | rnd_ | w{26,34}
replicate-token | r8_ | w{37,40}
resend-key | re_ | w{8}_w{22,26}
rootly-token | rootly_ | h{64}
rubygems-token | rubygems_ | h{48}
runpod-key | rpa_ | u{40,50}
salesforce-token | 00D | w{12,15}![A-Za-z0-9._]{60,200}
scaleway-key | SCW | u{17}
scalingo-token | tk-us- | W{48}
sendgrid-key | SG. | (?:W{22}\.W{43}|v{66})
sendinblue-key | xkeysib- xsmtpsib- | h{64}-w{16}
sentry-token | sntrys_ | [A-Za-z0-9+/=_-]{60,400}
sentry-token | sntryu_ | h{64}
settlemint-token | sm_aat_ sm_pat_ sm_sat_ | w{16}
shippo-token | shippo_live_ shippo_test_ | H{40}
shopify-token | shpat_ shpca_ shppa_ shpss_ shpua_ shptka_ | H{32}
slack-token | xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxc- | (?:d{1,2}-)?(?:d{5,14}-){1,3}w{14,80}
slack-token | xoxa- xoxr- | (?:d{1}-)?w{20,48}
slack-token | xoxe- | d{1}-w{100,200}
slack-token | xoxe.xoxb- xoxe.xoxp- | d{1}-w{100,200}
slack-token | xoxd- | [A-Za-z0-9%+/=_-]{40,300}
slack-token | xapp- | d{1}-w{6,20}-d{6,20}-w{32,128}
snyk-token | snyk_uat. snyk_sat. | h{8}\.W{40,160}
sonar-token | squ_ sqp_ sqa_ | h{40}
sourcegraph-token | sgp_ | (?:(?:H{16}|local)_)?H{40}
sourcegraph-token | slk_ sgs_ sgd_ sgph_ | H{40,64}
sourcegraph-token | sgamp_ | [A-Za-z0-9_]{40,120}
square-token | EAAA | W{56,62}
square-token | sq0atp- sq0csp- sq0idp- | W{22,60}
statsig-key | secret- | w{40,50}
stripe-key | sk_live_ rk_live_ sk_test_ rk_test_ sk_prod_ rk_prod_ | w{16,255}
stripe-webhook-secret | whsec_ | b{24,255}={0,2}
stytch-secret | secret-live- secret-test- | [A-Za-z0-9_=-]{36}
sumologic-endpoint-token | ZaVnC4dhaV | b{60,160}={0,2}
supabase-token | sbp_ | h{40}
supabase-secret-key | sb_secret_ | W{20,60}
tailscale-key | tskey-auth- tskey-api- tskey-client- tskey-scim- tskey-webhook- | w{8,24}-w{16,40}
tavily-key | tvly- | W{28,60}
tencent-key | AKID | w{32}
together-key | tgp_v1_ | W{40,50}
trello-token | ATTA | H{56,76}
trigger-dev-key | tr_dev_ tr_prod_ tr_stg_ tr_pat_ | w{20,44}
twilio-key | SK | H{32}
twilio-account | AC | h{32}
twitter-bearer-token | AAAAAAAAAAAAAAAAAAAAA | (?<![A-Za-z0-9+/]A{21})[A-Za-z0-9%+/=]{60,160}
typeform-token | tfp_ | v{40,70}
ubidots-token | BBFF- BBUS- | w{30,36}
unkey-key | unkey_ | w{20,40}
vercel-token | vcp_ vci_ vca_ vcr_ vck_ | w{24,60}
voiceflow-key | VF.DM. | h{24}\.w{16}
voyage-key | pa- | W{43}
woocommerce-key | ck_ cs_ | h{40}
xai-key | xai- | w{70,90}
yandex-key | AQVN | W{35,38}
yandex-key | YC | W{38}
yandex-token | t1. | W{20,400}={0,2}\.W{86}={0,2}
yandex-oauth-token | y0_ y1_ y2_ | W{50,70}
zoho-token | 1000. | h{32}\.h{32}
zuplo-key | zpka_ | l{32}_h{8}
jwt | eyJ | [A-Za-z0-9_-]{12,3000}+={0,2}\.[A-Za-z0-9_-]{4,3000}+={0,2}(?:\.[A-Za-z0-9_-]{0,2000}+={0,2}){0,3}
base64-jwt | ZXlK | b{60,1000}={0,2}
"""

INSIDE = r"""
authress-access-key | .acc_ .acc- | 6 | w{1}[A-Za-z0-9_.]{5}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}
facebook-app-token | | %7C | 15 | d{15}(?:\||%7C)W{27,40}
azure-ad-client-secret | 0Q~ 1Q~ 2Q~ 3Q~ 4Q~ 5Q~ 6Q~ 7Q~ 8Q~ 9Q~ | 3 | [A-Za-z0-9_~.]{3}d{1}Q~[A-Za-z0-9_~.-]{31,34}
azure-devops-token | AZDO | 76 | \bw{76}AZDOw{4}
azure-key | JQQJ9 | 52 | \bw{52}JQQJ9w{27}
azure-function-key | AzFu | 44 | \bW{44}AzFuW{5}[AQgw]={0,2}
azure-search-key | AzSe | 42 | \bw{42}AzSew{6}
azure-cache-key | AzCa | 33 | \bw{33}AzCaw{6}=?
mailchimp-key | -us | 32 | \bl{32}-usd{1,2}
maxmind-key | _mmk | 36 | \bw{6}_w{29}_mmk
new-relic-license-key | NRAL | 36 | \bw{36}NRAL
telegram-token | :A | 8 | d{8}:AW{34}(?!W{1})
terraform-token | .atlasv1. | 14 | \bw{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80}
"""
