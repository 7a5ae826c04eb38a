/* Licences of the libraries in this file: NOTICE.txt */
import{h as a,i as b,j as c}from"./chunk-W5VNXLJ3.js";import"./chunk-EOYKK7QD.js";import"./chunk-V4VZJUU4.js";import"./chunk-PDAZIZGF.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
