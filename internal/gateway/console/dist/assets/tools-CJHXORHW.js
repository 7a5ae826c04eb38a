/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-XYYBM5ME.js";import"./chunk-UKVU5BF2.js";import"./chunk-AS2EHX4K.js";import"./chunk-HOGM3F6I.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
