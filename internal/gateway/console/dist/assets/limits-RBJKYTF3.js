/* Licences of the libraries in this file: NOTICE.txt */
import{a,b}from"./chunk-YQOF6G2X.js";import"./chunk-T77HCXNB.js";import"./chunk-GKZVYUOD.js";import"./chunk-OOJM4CTU.js";export{a as LastRun,b as default};
